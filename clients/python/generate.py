"""Makes the modules of the operations and schemas from openapi.json: python3 generate.py [DESCRIPTION [PACKAGE]]."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

here = Path(__file__).resolve().parent
default_description = here.parents[1] / "openapi.json"
default_package = here / "src" / "document_relay_client"

folders = ("api", "models")
modules = ("client.py", "errors.py", "types.py")


def generate(description: Path = default_description, package: Path = default_package) -> None:
    """Replaces the generated modules of the package. The modules beside them are written by hand."""
    with TemporaryDirectory() as folder:
        made, config = Path(folder) / "made", Path(folder) / "config.json"
        config.write_text(json.dumps({"post_hooks": []}))
        command = ["generate", "--path", description, "--output-path", made, "--meta", "none", "--config", config]
        program = [sys.executable, "-m", "openapi_python_client", *map(str, command), "--fail-on-warning"]
        subprocess.run(program, check=True)
        for name in folders:
            shutil.rmtree(package / name, ignore_errors=True)
            shutil.copytree(made / name, package / name)
        for name in modules:
            shutil.copyfile(made / name, package / name)


if __name__ == "__main__":
    generate(*map(Path, sys.argv[1:]))
