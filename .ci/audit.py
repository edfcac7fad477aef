"""Check the locked versions for known vulnerabilities with pip-audit; print the date and what was not found.

Exit code 0: every package was looked up, and none has a known vulnerability. 1: some have. 2: some or all
packages could not be looked up, so the result is unknown.
"""

from __future__ import annotations

import datetime
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKS = ("requirements.lock", "requirements-torch.lock", "requirements-dev.lock")


def main() -> int:
    words = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off"]
    words += ["--require-hashes", "--disable-pip", "--timeout", "30"]
    words += [word for name in LOCKS for word in ("--requirement", str(ROOT / name))]
    asked = datetime.datetime.now(datetime.UTC)
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError):
        last = (done.stderr.strip().splitlines() or ["pip-audit printed nothing"])[-1]
        print(f"Could not reach the database of advisories, so the result is unknown. ({last})")
        return 2
    missed = [each for each in found if "skip_reason" in each]
    if len(missed) == len(found):
        print(
            "Could not reach the database of advisories: the answer has no packages. The result is unknown."
        )
        return 2
    faulty = [each for each in found if each.get("vulns")]
    print(
        f"Looked up {len(found) - len(missed)} packages in pip-audit's database "
        f"on {asked:%Y-%m-%d %H:%M} UTC: {len(faulty)} with known vulnerabilities, {len(missed)} not found."
    )
    for each in faulty:
        names = ", ".join(fault["id"] for fault in each["vulns"])
        fixed = sorted({version for fault in each["vulns"] for version in fault["fix_versions"]})
        print(f"  {each['name']} {each['version']}: {names}; fixed in {', '.join(fixed) or 'no version yet'}")
    if missed:
        print(f"  not looked up: {', '.join(each['name'] for each in missed)}")
    if faulty:
        return 1
    return 2 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
