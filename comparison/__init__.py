"""Designs side by side: scenarios with faults, the pipeline that measures them, the report that shows them."""
