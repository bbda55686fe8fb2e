# ONNX's own C++ library, built by scripts/setup-onnx.sh, as charonia::onnx:
# headers, static archive, definitions and protobuf-lite (the runtime's own, so that
# one protobuf is in the program). CHARONIA_ONNX_DIR names another install prefix of
# the same version.
#
# The library throws: a caller that reaches its checker, its schemas or its
# function bodies needs exceptions (COMPILE_OPTIONS -fexceptions) in that file.

set(CHARONIA_ONNX_DIR "" CACHE PATH "Install prefix of ONNX 1.23.2; empty: the one of scripts/setup-onnx.sh")
set(onnx_prefix ${CHARONIA_ONNX_DIR})
if(NOT onnx_prefix)
  execute_process(
    COMMAND ${CMAKE_COMMAND} -E env CXX=${CMAKE_CXX_COMPILER}
            ${CMAKE_SOURCE_DIR}/scripts/setup-onnx.sh --print
    OUTPUT_VARIABLE onnx_prefix OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
if(NOT EXISTS ${onnx_prefix}/lib/libonnx.a)
  message(FATAL_ERROR "ONNX's C++ library is not in ${onnx_prefix}: run scripts/setup.sh first")
endif()

add_library(charonia_onnx INTERFACE)
add_library(charonia::onnx ALIAS charonia_onnx)
target_include_directories(charonia_onnx SYSTEM INTERFACE ${onnx_prefix}/include)
# As the archive was built; the documentation strings change the layout of OpSchema.
target_compile_definitions(charonia_onnx INTERFACE
  ONNX_ML=1 ONNX_NAMESPACE=onnx ONNX_USE_LITE_PROTO=1 __ONNX_NO_DOC_STRINGS)
target_link_libraries(charonia_onnx INTERFACE ${onnx_prefix}/lib/libonnx.a charonia::protobuf)
set(CharoniaONNX_FOUND TRUE)
