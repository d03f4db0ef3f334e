-- What the commits of a run come to.
SELECT run_id, -1 AS number, '' AS view,
       sum(CASE WHEN outcome = 'accepted' THEN 1 ELSE 0 END) AS written,
       sum(CASE WHEN outcome = 'accepted' AND is_stale THEN 1 ELSE 0 END) AS stale_writes,
       sum(CASE WHEN moved_back_by > 0 THEN 1 ELSE 0 END) AS moved_back,
       sum(moved_back_by) AS moved_back_records,
       sum(CASE WHEN is_old THEN 1 ELSE 0 END) AS old_accepted,
       sum(CASE WHEN outcome = 'accepted' THEN 0 ELSE 1 END) AS refused,
       sum(CASE WHEN is_fenced THEN 1 ELSE 0 END) AS fenced
FROM commits
GROUP BY run_id
