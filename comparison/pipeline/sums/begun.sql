-- By change: the partitions that somebody had for the first time in the run, and when the last of them was.
WITH firsts AS (
  SELECT run_id, view, min(from_ns) AS from_ns
  FROM ownership
  WHERE view IN ('believed', 'delivering')
  GROUP BY run_id, view, group_id, topic, partition
)
SELECT f.run_id, w.number, f.view, count(*) AS partitions, max(f.from_ns) AS last_ns
FROM firsts f
JOIN windows w ON w.run_id = f.run_id AND w.number >= 0 AND f.from_ns >= w.from_ns AND f.from_ns < w.until_ns
GROUP BY f.run_id, w.number, f.view
