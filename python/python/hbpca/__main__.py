"""`python -m hbpca`: the command `hbpca`."""

import sys

from hbpca._command import main

sys.exit(main())
