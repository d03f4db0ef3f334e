"""The member's side of the classic designs: `eager`, `static`, `cooperative` and `delayed`."""
