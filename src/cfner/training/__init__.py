"""One step of learning: prepare (teacher, growth, matching), train, choose the best epoch."""
