#pragma once

#include <mpi.h>

#include <cstddef>
#include <vector>

namespace rankine {

/// A set of MPI requests that are finished together. Data longer than `message_limit` travels in several
/// messages, because MPI's counts are ints. Messages of one pair and tag arrive in the order of posting.
class Requests {
 public:
  Requests(MPI_Comm comm, std::size_t message_limit) : comm_(comm), message_limit_(message_limit) {}
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  /// Gives up what is unfinished: buffers of receives that were matched already may still be written.
  ~Requests();

  void send(const void* data, std::size_t bytes, int peer, int tag);
  void receive(void* data, std::size_t bytes, int peer, int tag);
  /// A request of a nonblocking MPI collective.
  void adopt(MPI_Request request);

  /// Advances; true when everything is finished, and then the set is empty again. Throws CommunicationError,
  /// also when a message is shorter than was expected.
  bool done();
  /// Ranks whose messages haven't arrived.
  std::vector<int> unheard() const;

 private:
  enum class Kind : unsigned char { send, receive, collective };
  struct Expected {
    Kind kind;
    int peer;
    int bytes;
  };
  void check_statuses() const;

  MPI_Comm comm_;
  std::size_t message_limit_;
  std::vector<MPI_Request> requests_;
  std::vector<Expected> expected_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace rankine
