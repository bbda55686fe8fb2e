# How the tests of a folder are declared. Each becomes one entry of ctest, and all
# of them are built by `all`, so that `ctest` after a build runs everything.

find_package(GTest REQUIRED)

# Programs, so that lit finds charonia and charonia-opt beside each other.
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin/tests)

# The interpreter with onnx, onnxruntime, numpy and pytest: scripts/setup.sh makes it.
set(python_default python3)
if(DEFINED ENV{CHARONIA_PYTHON})
  set(python_default $ENV{CHARONIA_PYTHON})
elseif(EXISTS ${CMAKE_SOURCE_DIR}/build/venv/bin/python)
  set(python_default ${CMAKE_SOURCE_DIR}/build/venv/bin/python)
endif()
set(CHARONIA_PYTHON ${python_default} CACHE STRING "Python with the packages of scripts/requirements.txt")

# The libraries of Debian are not instrumented, and containers and allocators cross
# them; LLVM has a signal stack of its own. A finding aborts: a test that expects a
# command to fail with status 1 must not take a sanitizer's for it.
set(charonia_asan_options
  detect_container_overflow=0:allow_user_poisoning=0:use_sigaltstack=0:detect_leaks=0:abort_on_error=1)

# What every test may ask for in its environment.
set(charonia_test_environment
  "CHARONIA_SOURCE_DIR=${CMAKE_SOURCE_DIR}"
  "CHARONIA_BINARY_DIR=${CMAKE_BINARY_DIR}"
  "CHARONIA=${CMAKE_BINARY_DIR}/bin/charonia"
  "PYTHONPATH=${CMAKE_SOURCE_DIR}/scripts"
  "ASAN_OPTIONS=${charonia_asan_options}"
  "UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1:abort_on_error=1"
  "TSAN_OPTIONS=halt_on_error=1:abort_on_error=1")

function(charonia_test_properties name labels timeout)
  if(NOT timeout)
    set(timeout 300)
  endif()
  if(CHARONIA_SANITIZE)
    math(EXPR timeout "${timeout} * 4")
  endif()
  set_tests_properties(${name} PROPERTIES TIMEOUT ${timeout} LABELS "${labels}"
    ENVIRONMENT "${charonia_test_environment}")
endfunction()

# charonia_gtest(<name> SOURCES ... [LINK ...] [DEPENDS ...] [LABELS ...] [TIMEOUT s] [MLIR])
#   MLIR: sources that include MLIR, compiled as its libraries are (no exceptions,
#   no RTTI, precompiled header). A test that needs a GPU has the label gpu.
#   Files are found below CHARONIA_SOURCE_DIR of the environment: a definition with the
#   checkout's path would keep ccache from serving other checkouts, CI's among them.
function(charonia_gtest name)
  cmake_parse_arguments(A "MLIR" "TIMEOUT" "SOURCES;LINK;DEPENDS;LABELS" ${ARGN})
  set(program ${name}_test)
  if(A_MLIR)
    # An object library, because the precompiled header is -fPIC and programs are -fPIE.
    charonia_mlir_objects(${program}_objects ${A_SOURCES})
    target_link_libraries(${program}_objects PUBLIC ${A_LINK} GTest::gmock_main GTest::gmock GTest::gtest)
    add_executable(${program})
    target_link_libraries(${program} PRIVATE ${program}_objects)
    if(A_DEPENDS)
      add_dependencies(${program}_objects ${A_DEPENDS})
    endif()
  else()
    add_executable(${program} ${A_SOURCES})
    target_link_libraries(${program} PRIVATE ${A_LINK} GTest::gmock_main GTest::gmock GTest::gtest)
  endif()
  if(A_DEPENDS)
    add_dependencies(${program} ${A_DEPENDS})
  endif()
  add_test(NAME gtest.${name} COMMAND ${program} --gtest_brief=1)
  charonia_test_properties(gtest.${name} "gtest;${A_LABELS}" "${A_TIMEOUT}")
endfunction()

# charonia_lit(<folder>): the .mlir and .test files below tests/<folder>.
find_program(LIT NAMES lit HINTS /usr/lib/llvm-22/bin NO_CACHE REQUIRED
             PATHS ${CMAKE_SOURCE_DIR}/build/venv/bin)
configure_file(${CMAKE_SOURCE_DIR}/tests/lit.site.cfg.py.in ${CMAKE_BINARY_DIR}/tests/lit.site.cfg.py @ONLY)
function(charonia_lit folder)
  file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/tests/${folder})
  add_test(NAME lit.${folder}
    COMMAND ${LIT} -v --no-progress-bar --order=lexical ${CMAKE_BINARY_DIR}/tests/${folder})
  charonia_test_properties(lit.${folder} "lit" 600)
endfunction()

# charonia_python(<name> <file.py> [COST s] [ARGS ...] [LABELS ...] [TIMEOUT s]): a script
# that exits with 0 if all is well. charonia_pytest: the same of a file of pytest.
# COST: about how many seconds it takes. The costly start first; without it a first run,
# which has no times of its own (CI's), ends with one long test beside an idle processor.
# ctest takes it instead of times it has measured.
function(charonia_python name file)
  cmake_parse_arguments(A "" "TIMEOUT;COST" "LABELS;ARGS" ${ARGN})
  add_test(NAME e2e.${name} COMMAND ${CHARONIA_PYTHON} ${CMAKE_CURRENT_SOURCE_DIR}/${file} ${A_ARGS})
  charonia_test_properties(e2e.${name} "e2e;${A_LABELS}" "${A_TIMEOUT}")
  if(A_COST)
    set_tests_properties(e2e.${name} PROPERTIES COST ${A_COST})
  endif()
endfunction()

function(charonia_pytest name file)
  cmake_parse_arguments(A "" "TIMEOUT;COST" "LABELS;ARGS" ${ARGN})
  add_test(NAME e2e.${name}
    COMMAND ${CHARONIA_PYTHON} -m pytest -q -p no:cacheprovider ${A_ARGS} ${CMAKE_CURRENT_SOURCE_DIR}/${file})
  charonia_test_properties(e2e.${name} "e2e;${A_LABELS}" "${A_TIMEOUT}")
  if(A_COST)
    set_tests_properties(e2e.${name} PROPERTIES COST ${A_COST})
  endif()
endfunction()

# charonia_guard(<name> <command>...): a check of the repository or of the binaries.
function(charonia_guard name)
  add_test(NAME guard.${name} COMMAND ${ARGN} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
  charonia_test_properties(guard.${name} "guard" 120)
endfunction()
