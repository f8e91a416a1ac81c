"""Finds CUDA and cuDNN for the build: kernels/cuda/meson.build runs it, and so may you.

    find.py CUDA_ROOT CUDNN_ROOT        the options cuda-root and cudnn-root, "" where not given

Prints lines KEY=PATH: nvcc, include (folders, in order of search), and the libraries cudart, cublasLt, cudnn. What is not found has no
line. Places, in order: the options; CUDNN_PATH, CUDA_PATH, CUDA_HOME; the folder of the nvcc in PATH; Python wheels (nvidia/*); the
usual prefixes. Wheels hold libraries under their versioned name only, so that a library is its file's path."""

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


def prefixes(cuda_root, cudnn_root):
    if cuda_root or cudnn_root:
        given = [cudnn_root, cuda_root]
    else:
        given = []
    given += [os.environ.get(name) for name in ("CUDNN_PATH", "CUDA_PATH", "CUDA_HOME")]
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


def main(cuda_root="", cudnn_root=""):
    places = prefixes(cuda_root, cudnn_root)
    for prefix in places:
        if os.access(prefix + "/bin/nvcc", os.X_OK):
            print(f"nvcc={prefix}/bin/nvcc")
            break
    folders = []
    for header in HEADERS:
        for folder in (path for prefix in places for path in (prefix + "/include", prefix + "/include/x86_64-linux-gnu")):
            if os.path.exists(f"{folder}/{header}"):
                folders.append(folder)
                break
        else:
            print(f"missing={header}")
    for folder in dict.fromkeys(folders):
        print(f"include={folder}")
    for name in LIBRARIES:
        found = next(filter(None, (library(prefix, name) for prefix in places)), None)
        print(f"{name}={found}" if found else f"missing=lib{name}.so")


main(*sys.argv[1:])
