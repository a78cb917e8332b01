"""Settings of the training run, as stepscope's trace handler recorded them."""
