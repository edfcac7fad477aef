"""A plain server of a stock checkpoint, FastAPI and the pipeline: python stock_server.py FOLDER PORT"""

import sys
from typing import Any

import uvicorn
from fastapi import FastAPI
from pydantic import BaseModel
from transformers import pipeline

folder, port = sys.argv[1:]
find = pipeline("token-classification", folder, aggregation_strategy="first", device="cpu")
app = FastAPI()


class Request(BaseModel):
    text: str


# not in FastAPI's threads: on a processor, requests that are computed at the same time slow each other down
@app.post("/predict")
async def predict(request: Request) -> list[dict[str, Any]]:
    return [{**entity, "score": float(entity["score"])} for entity in find(request.text)]


@app.get("/health")
async def health() -> str:
    return "ok"


uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning", access_log=False)
