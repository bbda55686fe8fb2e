# How every target of the project is built: warnings, sanitizers, ccache, lld.

# What is built once per machine and shared by every checkout; scripts/setup-onnx.sh
# uses the same folder.
if(DEFINED ENV{CHARONIA_CACHE})
  set(CHARONIA_CACHE $ENV{CHARONIA_CACHE})
elseif(DEFINED ENV{XDG_CACHE_HOME})
  set(CHARONIA_CACHE $ENV{XDG_CACHE_HOME}/charonia)
else()
  set(CHARONIA_CACHE $ENV{HOME}/.cache/charonia)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # The precompiled header and __TIME__-free sources make this sloppiness safe.
  # One cache serves every checkout and build folder of the project.
  set(launcher ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_INODECACHE=1 CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_program(LLD NAMES ld.lld-22 ld.lld)
if(LLD AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_link_options(-fuse-ld=lld)
endif()

set(charonia_compile_options -Wall -Wextra -Wno-unused-parameter)
if(CHARONIA_SANITIZE)
  list(APPEND charonia_compile_options -fsanitize=${CHARONIA_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CHARONIA_SANITIZE})
endif()
add_compile_options(${charonia_compile_options})
include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

find_package(Threads REQUIRED)
