"""Generates the client before it is packed. A source distribution contains the result instead of the description."""

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class GenerateHook(BuildHookInterface):  # type: ignore[type-arg, misc]
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        script = runpy.run_path(str(Path(self.root) / "generate.py"))
        if script["default_description"].exists():
            script["generate"]()
