-- What the other queries call windows: each change until the next one, and the whole run as number -1.
SELECT run_id, number, from_ns, coalesce(until_ns, 2305843009213693952) AS until_ns FROM changes
UNION ALL
SELECT run_id, -1, -2305843009213693952, 2305843009213693952 FROM runs
