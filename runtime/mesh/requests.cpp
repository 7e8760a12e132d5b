#include "runtime/mesh/requests.hpp"

#include <algorithm>
#include <string>

#include "runtime/error.hpp"
#include "runtime/mesh/mpi_error.hpp"
#include "runtime/mesh/mpi_handle.hpp"

namespace rankine {

Requests::~Requests() {
  if (requests_.empty() || !mpi_is_running()) return;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (requests_[i] == MPI_REQUEST_NULL || expected_[i].kind == Kind::collective) continue;
    if (expected_[i].kind == Kind::receive) MPI_Cancel(&requests_[i]);
    MPI_Request_free(&requests_[i]);
  }
}

void Requests::send(const void* data, std::size_t bytes, int peer, int tag) {
  for (std::size_t at = 0; at < bytes; at += message_limit_) {
    const int count = static_cast<int>(std::min(message_limit_, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(
        MPI_Isend(static_cast<const std::byte*>(data) + at, count, MPI_BYTE, peer, tag, comm_, &request),
        "MPI_Isend");
    requests_.push_back(request);
    expected_.push_back({Kind::send, peer, count});
  }
}

void Requests::receive(void* data, std::size_t bytes, int peer, int tag) {
  for (std::size_t at = 0; at < bytes; at += message_limit_) {
    const int count = static_cast<int>(std::min(message_limit_, bytes - at));
    MPI_Request request = MPI_REQUEST_NULL;
    check_mpi(MPI_Irecv(static_cast<std::byte*>(data) + at, count, MPI_BYTE, peer, tag, comm_, &request),
              "MPI_Irecv");
    requests_.push_back(request);
    expected_.push_back({Kind::receive, peer, count});
  }
}

void Requests::adopt(MPI_Request request) {
  requests_.push_back(request);
  expected_.push_back({Kind::collective, -1, 0});
}

bool Requests::done() {
  if (requests_.empty()) return true;
  statuses_.resize(requests_.size());
  int flag = 0;
  const int code = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &flag, statuses_.data());
  if (code == MPI_ERR_IN_STATUS) {
    for (const auto& status : statuses_) {
      if (status.MPI_ERROR != MPI_ERR_PENDING) check_mpi(status.MPI_ERROR, "a message");
    }
  }
  check_mpi(code, "MPI_Testall");
  if (flag == 0) return false;
  check_statuses();
  requests_.clear();
  expected_.clear();
  return true;
}

void Requests::check_statuses() const {
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    if (expected_[i].kind != Kind::receive) continue;
    int bytes = 0;
    check_mpi(MPI_Get_count(&statuses_[i], MPI_BYTE, &bytes), "MPI_Get_count");
    if (bytes != expected_[i].bytes) {
      throw CommunicationError("rank " + std::to_string(expected_[i].peer) + " of the group sent " +
                               std::to_string(bytes) + " bytes where " + std::to_string(expected_[i].bytes) +
                               " were expected: the ranks disagree on what they communicate");
    }
  }
}

std::vector<int> Requests::unheard() const {
  std::vector<int> ranks;
  for (std::size_t i = 0; i < requests_.size(); ++i) {
    if (expected_[i].kind != Kind::receive) continue;
    int flag = 1;
    if (MPI_Request_get_status(requests_[i], &flag, MPI_STATUS_IGNORE) == MPI_SUCCESS && flag == 0) {
      ranks.push_back(expected_[i].peer);
    }
  }
  std::sort(ranks.begin(), ranks.end());
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

}  // namespace rankine
