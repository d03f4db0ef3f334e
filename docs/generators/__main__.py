"""Writes every page and figure that is generated from the code: `make names`."""

from __future__ import annotations

from docs.generators import (
    assign_blocks,
    checks_page,
    choice_page,
    concept_pictures,
    fault_page,
    history_picture,
    large_page,
    lookup_page,
    machine_page,
    name_tests,
    offset_picture,
    phases_page,
    rebalance_table,
    reconciliation_page,
    recorded_page,
    results_page,
    settings_page,
    simulation_page,
    table_pages,
)

GENERATORS = (
    name_tests,
    table_pages,
    fault_page,
    checks_page,
    settings_page,
    machine_page,
    large_page,
    lookup_page,
    history_picture,
    offset_picture,
    rebalance_table,
    assign_blocks,
    concept_pictures,
    phases_page,
    reconciliation_page,
    recorded_page,
    results_page,
    simulation_page,
    choice_page,
)


def main() -> None:
    for generator in GENERATORS:
        for path, content in generator.files().items():
            path.write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()
