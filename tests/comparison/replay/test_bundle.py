"""ES modules become one script, or an error that says what cannot."""

from __future__ import annotations

import pytest

from comparison.replay.bundle import bundled

MODULES = {
    "a.js": 'import { one, Two } from "./b.js";\nimport { three } from "./c.js";\n\nshow(one, Two, three);\n',
    "b.js": 'import { three } from "./c.js";\n\nexport const one = three;\nexport class Two {}\nconst own = 1;\n',
    "c.js": "export function three() {}\nexport async function four() {}\n",
}


def test_each_module_comes_once_before_those_that_import_it() -> None:
    script = bundled("a.js", MODULES)
    assert script.index("function three") < script.index("class Two") < script.index("show(")
    assert script.count("function three") == 1
    assert "return { one, Two };" in script
    assert "const { one, Two } = m1;" in script


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        (
            {"c.js": 'import { one } from "./b.js";\nexport const three = 1;\n'},
            "modules import each other: a.js -> b.js",
        ),
        ({"c.js": "export const other = 1;\n"}, "c.js does not export three, which b.js imports"),
        ({"c.js": "export const three = 1, four = 2;\nexport default three;\n"}, "not a form .*: export default three"),
        ({"b.js": 'export const one = import("./c.js");\nexport class Two {}\n'}, "not a form that can be bundled"),
        ({"b.js": 'import * as all from "./c.js";\nexport const one = 1;\nexport class Two {}\n'}, r"import \* as all"),
    ],
)
def test_other_forms_are_refused(changed: dict[str, str], complaint: str) -> None:
    with pytest.raises(ValueError, match=complaint):
        bundled("a.js", MODULES | changed)


def test_a_module_that_is_not_there_is_named() -> None:
    with pytest.raises(ValueError, match=r"no module c\.js, which b\.js imports"):
        bundled("a.js", {name: MODULES[name] for name in ("a.js", "b.js")})
