"""Options of the tests of this folder that can run in several ways."""


def pytest_addoption(parser):
    parser.addoption("--device", choices=("cpu", "simt"), default="cpu", help="simt: GPU kernels without a GPU")
    parser.addoption("--precision", default="fp32", help="as of charonia compile")
    parser.addoption("--part", default="1/1", help="of a file's tests: 2,3/3 are those of three that the first part, 1/3, leaves out")


def pytest_collection_modifyitems(config, items):
    parts, count = config.getoption("--part").split("/")
    wanted = {int(part) - 1 for part in parts.split(",")}
    items[:] = [item for i, item in enumerate(items) if i % int(count) in wanted]
