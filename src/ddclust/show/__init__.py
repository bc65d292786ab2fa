"""What was found: figures (``plots``), explanations (``explain``) and the report (``report``)."""
