-- By change: how often a partition moved to another member; was taken from one that stayed (stopped); and, of these,
-- was given back to the same one. A member that was restarted (m3.2), also after its removal, is the same member.
WITH intervals AS (
  SELECT run_id, owner, from_ns, until_ns, gone_ns, closed_by,
         regexp_replace(split_part(owner, '/', 1), '[.][0-9]+$', '') AS member,
         lag(owner) OVER line AS owner_before,
         lag(regexp_replace(split_part(owner, '/', 1), '[.][0-9]+$', '')) OVER line AS member_before,
         lag(closed_by) OVER line AS before_closed_by,
         lag(gone_ns) OVER line AS before_gone_ns,
         lead(owner) OVER line AS owner_behind
  FROM ownership
  WHERE view = 'believed'
  WINDOW line AS (PARTITION BY run_id, group_id, topic, partition ORDER BY from_ns, owner)
), told AS (
  SELECT *,
         owner_before <> owner
           AND NOT (member_before = member AND (before_closed_by = 'lost' OR coalesce(before_gone_ns <= from_ns, FALSE)))
           AS moves,
         closed_by IN ('revoked', 'lost') AS stops,
         coalesce(owner_behind = owner, FALSE) AS is_given_back
  FROM intervals
), counted AS (
  SELECT t.run_id, w.number,
         coalesce(t.moves AND t.from_ns >= w.from_ns AND t.from_ns < w.until_ns, FALSE) AS moved,
         coalesce(t.stops AND t.until_ns >= w.from_ns AND t.until_ns < w.until_ns
           AND coalesce(t.gone_ns >= w.until_ns, TRUE), FALSE) AS stopped,
         t.is_given_back
  FROM told t
  JOIN windows w ON w.run_id = t.run_id AND w.number >= 0
)
SELECT run_id, number, '' AS view,
       sum(CASE WHEN moved THEN 1 ELSE 0 END) AS moved,
       sum(CASE WHEN stopped THEN 1 ELSE 0 END) AS stopped,
       sum(CASE WHEN stopped AND is_given_back THEN 1 ELSE 0 END) AS stopped_kept
FROM counted
WHERE moved OR stopped
GROUP BY run_id, number
