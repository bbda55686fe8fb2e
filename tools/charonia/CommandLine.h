// What the command line may say.
#ifndef CHARONIA_TOOLS_CHARONIA_COMMANDLINE_H
#define CHARONIA_TOOLS_CHARONIA_COMMANDLINE_H

namespace charonia::tool {

/// Parses the arguments and carries out the command. Returns the exit status.
int runCommandLine(int argc, char **argv);

} // namespace charonia::tool

#endif
