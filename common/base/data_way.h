// By which card bytes leave: that of the data address, also where another card leads to the same peer.
//
// A machine with two cards in one subnet has two routes to every peer there, and the kernel takes the first, whatever address a
// socket is bound to. A socket that is bound to the card as well has one.
#pragma once

#include <sys/socket.h>

#include <string>

namespace motley {

// One of this machine's own numeric addresses, loopback's among them.
bool IsOfThisMachine(const std::string& address);

// Before connect() to `peer`: the connection leaves from `own`, a numeric address of this machine, and where the peer is in the
// subnet of its card, by that card. Nothing is done where the one of both is loopback and the other is not, or of another family.
// Empty, or what the system said against it, for people: the kernel then chooses.
std::string LeaveFrom(int fd, const std::string& own, const sockaddr_storage& peer);
// The same of a connection that was accepted, if it came in by that card; one that came by another stays as it is.
void StayOnCardOf(int fd, const std::string& own);

}  // namespace motley
