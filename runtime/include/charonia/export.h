//===- export.h - What the shared runtime library exports -------*- C++ -*-===//
#ifndef CHARONIA_EXPORT_H
#define CHARONIA_EXPORT_H

#if defined(_WIN32)
#define CHARONIA_API
#define CHARONIA_HIDDEN
#else
#define CHARONIA_API __attribute__((visibility("default")))
#define CHARONIA_HIDDEN __attribute__((visibility("hidden")))
#endif

#endif // CHARONIA_EXPORT_H
