"""A process that kills a server's process tree when the parent of both ends.

Where the kernel cannot do it: on macOS, which has no PR_SET_PDEATHSIG, and for a frozen server, which keeps
every signal but SIGKILL pending. Started by children.py: `python -m private_services.watcher PARENT SERVER`.
"""

import os
import sys
import time

from private_services.process_trees import ProcessTree

#: Seconds between two looks at the parent.
INTERVAL = 0.2


def main(parent: int, server: int) -> None:
    tree = ProcessTree(server)
    while tree.alive:
        if os.getppid() != parent:
            tree.kill()
            return
        time.sleep(INTERVAL)


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
