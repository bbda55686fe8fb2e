"""Options of the tests of this folder that can run in several ways."""


def pytest_addoption(parser):
    parser.addoption("--device", choices=("cpu", "simt"), default="cpu", help="simt: GPU kernels without a GPU")
    parser.addoption("--precision", default="fp32", help="as of charonia compile")
