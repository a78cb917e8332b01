"""Settings of the training run, as recorded by stepscope's trace handler."""
