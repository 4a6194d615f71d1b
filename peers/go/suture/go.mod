module toll/peers/go/suture

go 1.26.0

require github.com/thejerf/suture/v4 v4.0.6
