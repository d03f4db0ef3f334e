"""The member's side, as it does: a consumer whose streams are members, over a connection to the coordinator."""
