"""A second name for a file that never changes, instead of a second copy of its bytes."""

from __future__ import annotations

import os
import shutil
from pathlib import Path


def link_or_copy(source: Path, target: Path) -> None:
    """Hard-link a file where the file system allows it, and copy it elsewhere. ``target`` must be new.

    Only for files that nobody writes in place: a change would be seen under both names. So a file of another
    user, who may change it, is copied.
    """
    if source.lstat().st_uid == getattr(os, "geteuid", int)():  # Windows has no users in numbers: 0 there
        try:
            target.hardlink_to(source)
            return
        except FileExistsError:
            raise
        except OSError:
            pass  # another disk, too many links, or a file system without them: copied below
    shutil.copy2(source, target)
