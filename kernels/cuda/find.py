"""Finds CUDA and cuDNN for the build: kernels/cuda/meson.build runs it, and so may you.

    find.py CUDA_ROOT CUDNN_ROOT        the options cuda-root and cudnn-root, "" where not given

Prints lines KEY=PATH: nvcc, include (folders, in order of search), the libraries cudart, cublasLt, cudnn, and missing=NAME for a header
or library that is not there. With an option, what it names is sought there alone; else, in order: CUDNN_PATH, CUDA_PATH, CUDA_HOME;
where the nvcc in PATH lies; Python wheels (nvidia/*); the usual prefixes. What goes with nvcc is sought where that was found first, but
for CUDNN_PATH: beside a toolkit there may be wheels of another release. Wheels hold libraries under their versioned name only, so that
a library is given as its file's path."""

import glob
import os
import shutil
import site
import sys
import sysconfig

HEADERS = ["cuda_runtime_api.h", "cublasLt.h", "cudnn.h", "cuda_fp16.h", "vector_types.h"]
LIBRARIES = ["cudart", "cublasLt", "cudnn"]


def wheels():
    """Prefixes of NVIDIA's wheels: one for all (nvidia/cu13), or one for each library (nvidia/cudnn)."""
    folders = [sysconfig.get_paths()["purelib"], site.getusersitepackages(), *site.getsitepackages()]
    virtual = os.environ.get("VIRTUAL_ENV")
    folders += glob.glob(virtual + "/lib/python3*/site-packages") if virtual else []
    return [prefix for folder in folders for prefix in sorted(glob.glob(folder + "/nvidia/*"), reverse=True)]


def everywhere(nvcc):
    given = [os.environ.get("CUDNN_PATH"), os.path.dirname(os.path.dirname(nvcc)) if nvcc else None]
    given += [os.environ.get(name) for name in ("CUDA_PATH", "CUDA_HOME")]
    compiler = shutil.which("nvcc")
    given += [os.path.dirname(os.path.dirname(os.path.realpath(compiler)))] if compiler else []
    given += wheels() + ["/usr/local/cuda", "/usr"]
    return list(dict.fromkeys(prefix for prefix in given if prefix))


def library(prefix, name):
    """The library's file below the prefix: without version where there is one, else the newest."""
    for folder in ("lib64", "lib", "lib/x86_64-linux-gnu", "lib/aarch64-linux-gnu", "targets/x86_64-linux/lib"):
        found = sorted(glob.glob(f"{prefix}/{folder}/lib{name}.so*"), key=lambda path: (path.count("."), path))
        if found:
            return found[0]
    return None


def header(prefix, name):
    """The folder that it lies in."""
    for folder in (prefix + "/include", prefix + "/include/x86_64-linux-gnu", prefix + "/include/aarch64-linux-gnu"):
        if os.path.exists(f"{folder}/{name}"):
            return folder
    return None


def compiler(prefix, name):
    path = f"{prefix}/bin/{name}"
    return path if os.access(path, os.X_OK) else None


def main(cuda_root="", cudnn_root=""):
    def first(find, name, nvcc):
        root = cudnn_root if name.startswith("cudnn") else cuda_root
        return next(filter(None, (find(prefix, name) for prefix in ([root] if root else everywhere(nvcc)))), None)

    nvcc = first(compiler, "nvcc", None)
    if nvcc:
        print(f"nvcc={nvcc}")
    folders = {name: first(header, name, nvcc) for name in HEADERS}
    for folder in dict.fromkeys(filter(None, folders.values())):
        print(f"include={folder}")
    for name in LIBRARIES:
        found = first(library, name, nvcc)
        print(f"{name}={found}" if found else f"missing=lib{name}.so")
    for name in (name for name, folder in folders.items() if not folder):
        print(f"missing={name}")


main(*sys.argv[1:])
