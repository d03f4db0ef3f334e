"""The core of the pipeline's questions in SQL on DuckDB: a peer for its speed, and a second opinion on its answers.

Polls are brought into the order of their files, for an order cannot be checked without sorting, and reduced to
stretches of consecutive records; everything else is a sweep over the ends of ranges.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import duckdb

if TYPE_CHECKING:
    from pathlib import Path

_MEMORY = "8GB"
_KINDS = (
    *("records_delivered", "records_acked", "partitions_assigned", "partitions_revoked", "partitions_lost"),
    *("position_started", "offset_written", "authority_named", "authority_cleared", "final_offset", "stage_entered"),
)
_COLUMNS = {
    "seq": "BIGINT",
    "ns": "BIGINT",
    "kind": "VARCHAR",
    "process": "VARCHAR",
    "topic": "VARCHAR",
    "partition": "BIGINT",
    "first": "BIGINT",
    "last": "BIGINT",
    "serial_first": "BIGINT",
    "serial_last": "BIGINT",
    "offset": "BIGINT",
    "committed": "BIGINT",
    "end": "JSON",  # of an end marker it is an object
    "by": "VARCHAR",
    "owner": "VARCHAR",
    "stage": "VARCHAR",
    "partitions": 'STRUCT(topic VARCHAR, "partition" BIGINT)[]',
}


def answers(from_json: bool, runs: Path, events: Path, scratch: Path) -> dict[str, Any]:
    """The answers for one synthetic run, from its traces or from tables of events."""
    with duckdb.connect(config={"memory_limit": _MEMORY, "threads": os.cpu_count() or 1}) as db:
        db.execute(f"SET temp_directory = '{scratch}'")
        db.execute("SET preserve_insertion_order = false")
        if from_json:
            columns = ", ".join(f"'{name}': '{type_}'" for name, type_ in _COLUMNS.items())
            files = f"read_json('{runs}/trace/*.jsonl', format='newline_delimited', columns={{{columns}}})"
            named = '"offset" AS record_offset, "by" AS by_member, TRY_CAST("end" AS BIGINT) AS end_offset, ns AS t_ns'
            db.execute(f"CREATE TABLE ev AS SELECT *, {named} FROM {files} WHERE kind IS NOT NULL")
            for kind in _KINDS:
                db.execute(f"CREATE VIEW {kind} AS SELECT * FROM ev WHERE kind = '{kind}'")
            kinds = dict(db.execute("SELECT kind, count(*) FROM ev GROUP BY kind").fetchall())
        else:
            for kind in _KINDS:
                db.execute(f"CREATE VIEW {kind} AS SELECT * FROM read_parquet('{events}/kind={kind}/*.parquet')")
            every = f"read_parquet('{events}/*/*.parquet', hive_partitioning=true, union_by_name=true)"
            kinds = dict(db.execute(f"SELECT kind, count(*) FROM {every} GROUP BY kind").fetchall())
        db.execute(_SQL)
        names = [row[0] for row in db.execute("SELECT column_name FROM (DESCRIBE answers)").fetchall()]
        values = db.execute("SELECT * FROM answers").fetchone()
    assert values is not None
    return {"kinds": kinds, **dict(zip(names, map(int, values), strict=True))}


_SQL = """
CREATE TABLE span AS SELECT min(t_ns) FILTER (stage = 'steady') AS began, min(t_ns) FILTER (stage = 'final') AS ended
FROM stage_entered;

CREATE TABLE claims AS SELECT process, seq, t_ns, kind, p.topic AS topic, p."partition" AS part FROM (
  SELECT process, seq, t_ns, 'assigned' AS kind, unnest(partitions) AS p FROM partitions_assigned UNION ALL
  SELECT process, seq, t_ns, 'other', unnest(partitions) FROM partitions_revoked UNION ALL
  SELECT process, seq, t_ns, 'other', unnest(partitions) FROM partitions_lost);

-- Polls in the order of their files, with the marks between them: a claim that changed, a start of delivery.
CREATE TABLE stretches AS
WITH marked AS (
  SELECT process, topic, "partition" AS part, seq, t_ns, "first" AS lo, "last" + 1 AS hi, 0 AS claim, 0 AS started
  FROM records_delivered UNION ALL
  SELECT process, topic, part, seq, t_ns, NULL, NULL, 1, 0 FROM claims UNION ALL
  SELECT process, topic, "partition", seq, t_ns, NULL, NULL, 0, 1 FROM position_started),
placed AS (
  SELECT *, sum(claim) OVER w AS claims_before, sum(started) OVER w AS starts_before FROM marked
  WINDOW w AS (PARTITION BY process, topic, part ORDER BY seq ROWS UNBOUNDED PRECEDING)),
lagged AS (
  SELECT *, lag(hi) OVER w AS hi_before, lag(t_ns) OVER w AS t_before, lag(claims_before) OVER w AS claims_last,
         lag(starts_before) OVER w AS starts_last
  FROM placed WHERE lo IS NOT NULL WINDOW w AS (PARTITION BY process, topic, part ORDER BY seq)),
broken AS (
  SELECT *, (hi_before IS NOT NULL AND lo < hi_before AND starts_before = starts_last)::INT AS descends,
         (hi_before IS NULL OR lo <> hi_before OR t_ns - t_before > 1000000000 OR claims_before <> claims_last)::INT
         AS begins,
         (hi_before IS NULL OR t_ns - t_before > 1000000000 OR claims_before <> claims_last)::INT AS begins_in_time
  FROM lagged),
numbered AS (
  SELECT *, sum(begins) OVER w AS number, sum(begins_in_time) OVER w AS number_in_time
  FROM broken WINDOW w AS (PARTITION BY process, topic, part ORDER BY seq ROWS UNBOUNDED PRECEDING))
SELECT process, topic, part, any_value(number_in_time) AS number_in_time, min(lo) AS lo, max(hi) AS hi,
       min(t_ns) AS t0, max(t_ns) AS t1, sum(descends) AS descends
FROM numbered GROUP BY process, topic, part, number;

CREATE MACRO depths(ends) AS TABLE
SELECT topic, part, edge, sum(held) OVER w AS held, sum(wanted) OVER w AS wanted,
       lead(edge) OVER (PARTITION BY topic, part ORDER BY edge) - edge AS length
FROM (SELECT topic, part, edge, sum(held) AS held, sum(wanted) AS wanted FROM query_table(ends)
      GROUP BY topic, part, edge HAVING sum(held) <> 0 OR sum(wanted) <> 0)
WINDOW w AS (PARTITION BY topic, part ORDER BY edge ROWS UNBOUNDED PRECEDING);

CREATE TABLE record_ends AS
SELECT topic, part, lo AS edge, 1 AS held, 0 AS wanted FROM stretches UNION ALL
SELECT topic, part, hi, -1, 0 FROM stretches UNION ALL
SELECT topic, "partition", serial_first, 0, 1 FROM records_acked UNION ALL
SELECT topic, "partition", serial_last + 1, 0, -1 FROM records_acked;

CREATE TABLE believed_ends AS
WITH moves AS (
  SELECT *, lead(t_ns) OVER (PARTITION BY process, topic, part ORDER BY seq) AS until FROM claims),
clipped AS (
  SELECT topic, part, greatest(t_ns, began) AS lo, least(coalesce(until, ended), ended) AS hi
  FROM moves, span WHERE kind = 'assigned')
SELECT topic, part, lo AS edge, 1 AS held, 0 AS wanted FROM clipped WHERE lo < hi UNION ALL
SELECT topic, part, hi, -1, 0 FROM clipped WHERE lo < hi UNION ALL
SELECT DISTINCT topic, part, began, 0, 1 FROM claims, span UNION ALL
SELECT DISTINCT topic, part, ended, 0, -1 FROM claims, span;

CREATE TABLE delivering_ends AS
WITH intervals AS (
  SELECT topic, part, min(t0) AS lo, least(max(t1), any_value(ended)) AS hi FROM stretches, span
  GROUP BY process, topic, part, number_in_time)
SELECT topic, part, lo AS edge, 1 AS held, 0 AS wanted FROM intervals WHERE lo < hi UNION ALL
SELECT topic, part, hi, -1, 0 FROM intervals WHERE lo < hi;

-- What is held twice without a break is one overlap; in time it counts only if it is longer than the tolerance.
CREATE MACRO doubled(ends) AS (
WITH marked AS (
  SELECT *, sum((held < 2)::INT) OVER (PARTITION BY topic, part ORDER BY edge ROWS UNBOUNDED PRECEDING) AS number
  FROM depths(ends)),
maximal AS (
  SELECT sum(length) AS whole, sum(length * (held - 1)) AS doubled FROM marked WHERE held > 1
  GROUP BY topic, part, number)
SELECT coalesce(sum(doubled), 0) FROM maximal WHERE whole > 1000000);

CREATE TABLE commits AS
SELECT record_offset, lag(record_offset) OVER (PARTITION BY topic, "partition" ORDER BY t_ns, seq) AS before
FROM offset_written;

CREATE TABLE stale AS
WITH naming AS (
  SELECT topic, "partition" AS part, t_ns * 1::HUGEINT * 4294967296 + seq AS place, owner FROM authority_named UNION ALL
  SELECT topic, "partition", t_ns * 1::HUGEINT * 4294967296 + seq, '' FROM authority_cleared)
SELECT count(*) AS n FROM (
  SELECT topic, "partition" AS part, by_member, t_ns * 1::HUGEINT * 4294967296 + seq AS place
  FROM offset_written) AS written
ASOF JOIN naming ON written.topic = naming.topic AND written.part = naming.part AND written.place >= naming.place
WHERE owner <> '' AND by_member <> owner AND by_member <> regexp_replace(owner, '-[0-9]+$', '');

CREATE TABLE final AS
SELECT f.topic, f."partition" AS part, f.committed, f.end_offset, arg_max(w.record_offset, (w.t_ns, w.seq)) AS accepted
FROM final_offset AS f LEFT JOIN offset_written AS w
  ON w.topic = f.topic AND w."partition" = f."partition" AND w.t_ns <= f.t_ns - 100000000
GROUP BY ALL;

CREATE TABLE answers AS SELECT
  (SELECT sum(length * (held - 1)) FROM depths('record_ends') WHERE held > 1) AS duplicates,
  (SELECT coalesce(sum(length), 0) FROM depths('record_ends') WHERE held = 0 AND wanted > 0) AS lost,
  (SELECT sum(descends) FROM stretches) AS out_of_order,
  (SELECT coalesce(sum(length), 0) FROM depths('believed_ends') WHERE held = 0 AND wanted > 0) AS unowned_ns,
  doubled('believed_ends') AS double_owned_ns,
  doubled('delivering_ends') AS two_delivering_ns,
  (SELECT count(*) FROM offset_written) AS commits,
  (SELECT n FROM stale) AS stale_writes,
  (SELECT count(*) FILTER (record_offset < before) FROM commits) AS moved_back,
  (SELECT count(*) FROM final) AS final_read,
  (SELECT count(*) FILTER (committed < accepted) FROM final) AS final_behind,
  (SELECT count(*) FILTER (committed > end_offset) FROM final) AS final_beyond;
"""
