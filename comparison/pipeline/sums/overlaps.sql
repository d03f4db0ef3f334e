-- The longest time for which somebody held a partition beside another, without a pause, in each window and view.
WITH doubled AS (
  SELECT *, lag(high) OVER (PARTITION BY run_id, view, group_id, topic, partition ORDER BY low) AS high_before
  FROM segments
  WHERE counts_as_overlap
), numbered AS (
  SELECT *, sum(CASE WHEN low = high_before THEN 0 ELSE 1 END)
              OVER (PARTITION BY run_id, view, group_id, topic, partition ORDER BY low) AS stretch
  FROM doubled
), stretches AS (
  SELECT run_id, view, min(low) AS low, max(high) AS high
  FROM numbered
  GROUP BY run_id, view, group_id, topic, partition, stretch
)
SELECT o.run_id, w.number, o.view,
       max(CASE WHEN o.view IN ('offsets', 'serials') THEN o.high - o.low
                ELSE least(o.high, w.until_ns) - greatest(o.low, w.from_ns) END) AS doubled_longest
FROM stretches o
JOIN windows w ON w.run_id = o.run_id
WHERE CASE WHEN o.view IN ('offsets', 'serials') THEN w.number = -1
           ELSE o.low < w.until_ns AND o.high > w.from_ns AND w.from_ns < w.until_ns END
GROUP BY o.run_id, w.number, o.view
