/* Addresses that are the session's own: a connection to one of them ends at a listener inside, whatever machine it has elsewhere. */
#define _GNU_SOURCE
#include "launch.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct request {
  struct nlmsghdr header;
  struct rtmsg route;
  struct rtattr address_head;
  uint32_t address;
  struct rtattr device_head;
  uint32_t device;
};

/* `ip route add local ADDRESS/PREFIX dev lo`: a route and no address of the device, so that programs that list interfaces see loopback alone. */
static void make(int netlink, const struct plan_route *wanted, uint32_t loopback) {
  const struct request request = {
      .header = {.nlmsg_len = sizeof request, .nlmsg_type = RTM_NEWROUTE, .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_ACK},
      .route = {.rtm_family = AF_INET, .rtm_dst_len = wanted->prefix, .rtm_table = RT_TABLE_LOCAL, .rtm_protocol = RTPROT_STATIC, .rtm_scope = RT_SCOPE_HOST, .rtm_type = RTN_LOCAL},
      .address_head = {.rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_DST},
      .address = htonl(wanted->address),
      .device_head = {.rta_len = RTA_LENGTH(sizeof(uint32_t)), .rta_type = RTA_OIF},
      .device = loopback,
  };
  const struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
  if (sendto(netlink, &request, sizeof request, 0, (const struct sockaddr *)&kernel, sizeof kernel) != (ssize_t)sizeof request) fail("loopback", "route");
  struct {
    struct nlmsghdr header;
    struct nlmsgerr answer;
    unsigned char rest[256];
  } said;
  const ssize_t n = recv(netlink, &said, sizeof said, 0);
  if (n < (ssize_t)(sizeof said.header + sizeof said.answer) || said.header.nlmsg_type != NLMSG_ERROR) {
    errno = EPROTO;
    fail("loopback", "route");
  }
  if (said.answer.error != 0) {
    errno = -said.answer.error;
    fail("loopback", "route");
  }
}

void routes_make(const struct plan *plan) {
  if (plan->route_count == 0) return;
  const int netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  const unsigned loopback = if_nametoindex("lo");
  if (netlink < 0 || loopback == 0) fail("loopback", "route");
  for (size_t i = 0; i < plan->route_count; i++) make(netlink, &plan->routes[i], loopback);
  close(netlink);
}
