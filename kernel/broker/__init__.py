"""A broker: `server/` and `loop/` serve, `apis/` answer, `cluster/` joins, `storage/` keeps."""
