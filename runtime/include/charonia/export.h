//===- export.h - What the shared runtime library exports -------*- C++ -*-===//
#ifndef CHARONIA_EXPORT_H
#define CHARONIA_EXPORT_H

#if defined(_WIN32)
#define CHARONIA_API
#else
#define CHARONIA_API __attribute__((visibility("default")))
#endif

#endif // CHARONIA_EXPORT_H
