// Descriptors 0 to 2 of a program that somebody started without them.
#pragma once

namespace motley {

// Opens /dev/null as those of 0, 1 and 2 that are closed: else the first file or socket that the program opens has the number,
// and what is printed or logged is written into it. Reading 0 and writing 1 and 2 fail as before. First in main.
void HoldStandardStreams();

}  // namespace motley
