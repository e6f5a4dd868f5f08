"""Write deploy/cueline.cdx.json, the SBOM in the wheel; `make lock` runs it (needs uv)."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
STATIC = ROOT / "cueline/gateway/pages/static"
EXPORT = ["uv", "export", "--quiet", "--locked", "--no-dev", "--preview-features", "sbom-export"]


def exported(*options: str) -> dict[str, Any]:
    """Return the locked dependencies as CycloneDX."""
    command = [*EXPORT, "--format", "cyclonedx1.5", *options]
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def bundled() -> list[dict[str, Any]]:
    """Return the files of others that the wheel holds, with their digests."""
    version = re.search(r'"(4\.\d+\.\d+)"', (STATIC / "htmx.min.js").read_text())
    assert version, "htmx.min.js does not tell its version"
    ref = f"pkg:npm/htmx.org@{version[1]}"
    files = [line.split() for line in (STATIC / "SHA256SUMS").read_text().splitlines()]
    return [
        {
            "type": "file",
            "bom-ref": f"{ref}#{name}",
            "name": name,
            "version": version[1],
            "purl": ref,
            "licenses": [{"license": {"id": "0BSD"}}],
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        for digest, name in files
    ]


def sbom() -> dict[str, Any]:
    """Return the SBOM, without what differs from one export to the next."""
    whole, required = exported("--all-extras"), exported()
    names = {each["name"] for each in required["components"]}
    own = whole["metadata"]["component"]
    parts = bundled()
    purls = {each["bom-ref"]: each["purl"] for each in whole["components"]}
    purls[own["bom-ref"]] = f"pkg:pypi/{own['name']}@{own['version']}"
    components = [
        {
            "type": "library",
            "bom-ref": each["purl"],
            "name": each["name"],
            "version": each["version"],
            "purl": each["purl"],
            "scope": "required" if each["name"] in names else "optional",
        }
        for each in whole["components"]
    ]
    edges = {
        purls[each["ref"]]: [purls[ref] for ref in each.get("dependsOn", ())]
        for each in whole["dependencies"]
    }
    edges[purls[own["bom-ref"]]] += [each["bom-ref"] for each in parts]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": purls[own["bom-ref"]],
                "name": own["name"],
                "version": own["version"],
                "purl": purls[own["bom-ref"]],
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [*parts, *components],
        "dependencies": [{"ref": ref, "dependsOn": refs} for ref, refs in edges.items()],
    }


if __name__ == "__main__":
    written = json.dumps(sbom(), indent=1)
    # A line for each component, so that a change of one version shows as one line.
    written = re.sub(r"\n {3,}(?! )|\n {2}(?=[}\]])", " ", written)
    (ROOT / "deploy/cueline.cdx.json").write_text(f"{written}\n")
