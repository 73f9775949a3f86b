"""Write the page of all settings, those of the cluster's services too: `python docs/settings_page.py`."""

import sys

from beckon_cli.settings_page import TABLES, settings_page
from beckon_operator.settings import Settings as OperatorSettings
from beckon_operator.webhook.settings import WebhookSettings

CLUSTER = (
    ("The operator", "`python -m beckon_operator`", OperatorSettings),
    ("The webhook", "`python -m beckon_operator.webhook`", WebhookSettings),
)

if __name__ == "__main__":
    sys.stdout.write(settings_page((*TABLES, *CLUSTER)))
