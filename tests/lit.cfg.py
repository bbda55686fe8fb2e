# lit's configuration for all folders of tests/. The built programs and LLVM's
# FileCheck, not and split-file come first on PATH, so tests name them plainly.
import os

import lit.formats

config.name = "charonia"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir", ".test"]
config.excludes = ["Inputs"]
config.test_source_root = os.path.join(config.charonia_source_dir, "tests")
config.test_exec_root = os.path.join(config.charonia_binary_dir, "tests")

path = [os.path.join(config.charonia_binary_dir, "bin"), config.llvm_tools_dir]
config.environment["PATH"] = os.pathsep.join(path + [os.environ["PATH"]])
for name in ("ASAN_OPTIONS", "UBSAN_OPTIONS"):
    if name in os.environ:
        config.environment[name] = os.environ[name]
config.environment["PYTHONPATH"] = os.path.join(config.charonia_source_dir, "scripts")

config.substitutions.append(("%python", config.python))
config.substitutions.append(("%models", os.path.join(config.charonia_source_dir, "models")))
config.substitutions.append(("%build", config.charonia_binary_dir))
# Runs a command and says how it ended: "exit 2" on standard output.
config.substitutions.append(("%status", "sh -c '\"$@\"; echo exit $?' sh"))
