// What each request type does. A reply's fields and descriptor, or an error.
#pragma once

#include "session.h"

namespace tunerd::daemon {

struct Reply {
  Json fields = Json::object();
  std::shared_ptr<const SealedFile> file;
  std::string settled;  // the problem whose winner this answers with: true until that changes; empty otherwise
  bool stop = false;    // end the daemon after this reply
  bool close = false;   // end the connection after this reply
};

// Owns `fd` (-1: none came).
Task<Result<Reply>> answer_request(Server& server, Session& session, const Json& body, int fd);

// The status report, as docs/protocol.md lists it.
Json status_report(Server& server);

}  // namespace tunerd::daemon
