"""What is to be done, as data: the catalogue, its vocabulary, designs, settings, and what cannot work."""
