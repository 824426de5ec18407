// `status` and `plan` of a job say what moves its bytes.
#include <gtest/gtest.h>

#include "nlohmann/json.hpp"
#include "tests/coordinator/client/fake_motley.h"

namespace motley::client {
namespace {

using nlohmann::json;

v1::TransportUse Use(v1::Transport transport, const std::vector<std::string>& devices) {
  v1::TransportUse use;
  use.set_transport(transport);
  for (const std::string& device : devices) use.add_devices(device);
  return use;
}

TEST(TransportsTest, StatusSaysThem) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  EXPECT_EQ(Motley(fake, {"status", "j"}).out.find("transport"), std::string::npos) << "not known";
  EXPECT_EQ(json::parse(Motley(fake, {"-o", "json", "status", "j"}).out)["transports"], json::array());

  fake.transports = {Use(v1::TRANSPORT_TCP, {"n1/cpu0", "n2/cpu0"})};
  fake.transports[0].set_group(0);
  EXPECT_NE(Motley(fake, {"status", "j"}).out.find("\ntransport   tcp\nsubmitted "), std::string::npos);

  fake.transports.push_back(Use(v1::TRANSPORT_NCCL, {"n1/gpu0", "n2/gpu0"}));
  fake.transports[1].set_planned(v1::TRANSPORT_TCP);
  fake.transports[1].mutable_nccl_links()->add_kinds("sockets");
  fake.transports[1].mutable_nccl_links()->add_interfaces("eth0");
  fake.transports[1].mutable_nccl_links()->set_channels(2);
  fake.transports[0].set_why_not_nccl("n2/cpu0 has no NCCL");
  const std::string out = Motley(fake, {"status", "j"}).out;
  EXPECT_NE(out.find("\ntransport   nccl over sockets (eth0), 2 channels: hand-overs from n1/gpu0 to n2/gpu0\n"
                     "            tcp: group 0 (n2/cpu0 has no NCCL)\n"
                     "            not as planned: hand-overs from n1/gpu0 to n2/gpu0: nccl instead of tcp\n"
                     "submitted "),
            std::string::npos)
      << out;
  const json document = json::parse(Motley(fake, {"-o", "json", "status", "j"}).out);
  EXPECT_EQ(document["id"], "j");
  EXPECT_EQ(document["transports"], json::parse(R"([{"group": 0, "devices": ["n1/cpu0", "n2/cpu0"], "transport": "tcp",
                             "why_not_nccl": "n2/cpu0 has no NCCL", "planned": null, "nccl_links": null},
                            {"group": null, "devices": ["n1/gpu0", "n2/gpu0"], "transport": "nccl", "why_not_nccl": null,
                             "planned": "tcp",
                             "nccl_links": {"kinds": ["sockets"], "interfaces": ["eth0"], "channels": 2}}])"));
}

TEST(TransportsTest, APlanSaysThoseThatItForesees) {
  FakeMotley fake;
  fake.AddJob("j", v1::JOB_STATE_RUNNING);
  fake.plan.set_plan_text("the plan\n");
  fake.plan.set_explanation("because\n");
  fake.plan.set_plan_json("{}");
  fake.plan.add_programs("program 6\n");
  *fake.plan.add_transports() = Use(v1::TRANSPORT_NCCL, {"n1/gpu0", "n2/gpu0"});
  EXPECT_EQ(Motley(fake, {"plan", "j"}).out, "the plan\nplanned transport nccl\n");
  EXPECT_EQ(Motley(fake, {"plan", "j", "--explain", "--programs"}).out, "because\nplanned transport nccl\n\nprogram 6\n");
  v1::TransportUse mixed = Use(v1::TRANSPORT_TCP, {"n1/gpu0", "n3/cpu0"});
  mixed.set_group(0);
  mixed.set_why_not_nccl("n3/cpu0 has no NCCL");
  *fake.plan.add_transports() = mixed;
  EXPECT_EQ(Motley(fake, {"plan", "j"}).out,
            "the plan\n"
            "planned transport nccl: hand-overs from n1/gpu0 to n2/gpu0\n"
            "planned transport tcp: group 0 (n3/cpu0 has no NCCL)\n");
  const json document = json::parse(Motley(fake, {"-o", "json", "plan", "j"}).out);
  EXPECT_EQ(document["transports"].size(), 2u);
  EXPECT_EQ(document["transports"][1]["transport"], "tcp");
}

}  // namespace
}  // namespace motley::client
