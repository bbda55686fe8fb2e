# How every target of the project is built: warnings, sanitizers, ccache, lld.

find_program(CCACHE ccache)
if(CCACHE)
  # The precompiled header and __TIME__-free sources make this sloppiness safe.
  # One cache serves every checkout and build folder of the project.
  set(launcher ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_NOHASHDIR=1 CCACHE_BASEDIR=${CMAKE_SOURCE_DIR} ${CCACHE})
  set(CMAKE_C_COMPILER_LAUNCHER ${launcher})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${launcher})
endif()

find_program(LLD NAMES ld.lld-22 ld.lld)
if(LLD AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  add_link_options(-fuse-ld=lld)
endif()

add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(CHARONIA_SANITIZE)
  add_compile_options(-fsanitize=${CHARONIA_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${CHARONIA_SANITIZE})
endif()
include_directories(${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR})

find_package(Threads REQUIRED)
