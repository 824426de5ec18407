// Who may be a node of the cluster: its authority's keys, the tokens by which a machine joins, those that joined, and who
// has been its coordinator. Each is a row of the store, and the row decides: what has none is nobody's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/ids.h"
#include "common/tls/term.h"

namespace motley::coordinator {

// A key of the cluster's certificate authority. There are two while the cluster changes to a new one.
struct AuthorityRecord {
  int64_t number = 0;                    // counts from 1
  std::string private_key, certificate;  // PEM
  int64_t made_unix_ms = 0;
};

struct TokenRecord {
  std::string id;           // of JoinToken
  std::string secret_hash;  // HashOfSecret
  bool reusable = false;    // else it is good for one node
  int64_t joins = 0;        // so many joined by it
  int64_t made_unix_ms = 0, expires_unix_ms = 0;
};

struct MemberRecord {
  NodeName node;
  std::string key_hash;   // of its public key: who comes by its name must have the other half
  std::string token;      // id of the one by which it joined
  int64_t authority = 0;  // number of the one that signed its newest certificate
  int64_t joined_unix_ms = 0;
  int64_t until_unix_ms = 0;              // when that certificate expires
  std::vector<std::string> coordinators;  // addresses at which it looks for the cluster's coordinator
};

// A term that the store knows of (common/tls/term.h).
struct TermRecord {
  Term term;
  bool own = false;  // this store's coordinator is it, or was; else another showed it
};

// Who is at the other end of a connection, by its certificate.
struct NodeKey {
  NodeName node;
  std::string key_hash;
  std::string certificate;  // PEM
};

}  // namespace motley::coordinator
