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

// The other end's part. A listener answers by the card that the kernel likes, where a caller that is held to another one hears
// nothing. So two sockets listen at one port: one for what comes by the card of `own`, whose answers and connections stay on it,
// and one for all else. SharePort comes before the first one's bind(). -1: there is no such card, or the kernel does not want it.
void SharePort(int fd);
int ListenOnCardOf(const std::string& own, int listener, int backlog);

}  // namespace motley
