-- How much of each window was held, wanted and held by nobody, or held more than once, in each view; lengths are
-- nanoseconds, or records. Record numbers are not times, so they are counted for the whole run only (window -1).
WITH inside AS (
  SELECT s.run_id, w.number, s.view, s.holders, s.is_wanted, s.counts_as_overlap,
         CASE WHEN s.view IN ('offsets', 'serials') THEN s.high ELSE least(s.high, w.until_ns) END AS high,
         CASE WHEN s.view IN ('offsets', 'serials') THEN s.high - s.low
              ELSE least(s.high, w.until_ns) - greatest(s.low, w.from_ns) END AS length
  FROM segments s
  JOIN windows w ON w.run_id = s.run_id
  WHERE CASE WHEN s.view IN ('offsets', 'serials') THEN w.number = -1
             ELSE s.low < w.until_ns AND s.high > w.from_ns AND w.from_ns < w.until_ns END
)
SELECT run_id, number, view,
       sum(CASE WHEN holders > 0 THEN length ELSE 0 END) AS held,
       sum(CASE WHEN is_wanted AND holders = 0 THEN length ELSE 0 END) AS gap,
       max(CASE WHEN is_wanted AND holders = 0 THEN length END) AS gap_longest,
       sum(CASE WHEN counts_as_overlap THEN length * (holders - 1) ELSE 0 END) AS doubled,
       max(CASE WHEN is_wanted AND (holders = 0 OR counts_as_overlap) THEN high END) AS unsettled_until
FROM inside
GROUP BY run_id, number, view
