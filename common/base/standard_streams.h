// Descriptors 0 to 2 of a program that somebody started without them.
#pragma once

namespace motley {

// Opens /dev/null as those of 0, 1 and 2 that are closed: else the first file or socket that the program opens has the number,
// and what is printed or logged is written into it. Reading 0 and writing 1 and 2 fail as before.
//
// Before all else: gRPC's library opens an eventfd while it is loaded, and leaves it open. So no main calls it; in main's file
// stands
//   [[gnu::section(".preinit_array"), gnu::used]] void (*hold_standard_streams)() = motley::HoldStandardStreams;
// which the loader calls before the libraries' constructors. Nothing of C++ is there yet: system calls alone.
void HoldStandardStreams();

}  // namespace motley
