"""Tag a sentence with a stock checkpoint, as model cards show it: python stock_start.py FOLDER TEXT"""

import sys

import torch
from transformers import AutoModelForTokenClassification, AutoTokenizer

folder, text = sys.argv[1:]
tokenizer = AutoTokenizer.from_pretrained(folder)
model = AutoModelForTokenClassification.from_pretrained(folder)
with torch.inference_mode():
    labels = model(**tokenizer(text, return_tensors="pt")).logits.argmax(-1)[0].tolist()
print([model.config.id2label[label] for label in labels])
