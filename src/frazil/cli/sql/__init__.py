"""`frazil sql`: a prompt and scripts of SQL, with Spark behind them."""
